"""From lark's tree to IR."""

"""Facts about modules that several passes need; nothing here changes a program."""

"""The program under translation: its functions, their signatures, and the models they mention."""

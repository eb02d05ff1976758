"""How an agent takes its turns: the strategies, and what they are given to work with."""

"""The engine for Alibaba Cloud OSS: Alibaba's client addresses and signs, over connections of our own."""

"""What needs a model: clients of chat models and embedders, and the compressor of the working memory."""

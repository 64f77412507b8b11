"""How each family of models marks its reasoning and its calls of tools.

The facts come from the families' published templates and model cards. A family is known by texts in the model's chat
template, or by tokens of its vocabulary that are made for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.chat.call_writing import write_granite, write_hermes, write_lfm2
from engine.chat.json_calls import either, named_objects, parse_bare_objects, parse_objects
from engine.chat.pieces import ToolCall
from engine.chat.spans import Parse, Span, Wrapper
from engine.chat.tagged_calls import parse_elements, parse_open_close, parse_pairs, parse_parameters
from engine.chat.written_calls import parse_gemma_calls, parse_python_calls


@dataclass(frozen=True, slots=True)
class ReasoningFamily:
    """`evidence`: any of these in the template or, as a token, in the vocabulary."""

    evidence: tuple[str, ...]
    spans: tuple[Span, ...]
    wrappers: tuple[Wrapper, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFamily:
    """`evidence`: all texts of one of these sets in the template; a single text may also be a token.

    `write` is there where templates are known that show the tools, but not the calls: their text belongs into the
    message's content.
    """

    name: str
    evidence: tuple[tuple[str, ...], ...]
    spans: tuple[Span, ...]
    wrappers: tuple[Wrapper, ...] = ()
    write: Callable[[Sequence[ToolCall]], str] | None = None


def _tagged(name: str) -> ReasoningFamily:
    return ReasoningFamily((f"<{name}>", f"</{name}>"), (Span(f"<{name}>", f"</{name}>"),))


REASONING: tuple[ReasoningFamily, ...] = (
    _tagged("seed:think"),
    _tagged("mm:think"),
    ReasoningFamily(("[THINK]",), (Span("[THINK]", "[/THINK]"),)),
    ReasoningFamily(
        ("<|START_THINKING|>",),
        (Span("<|START_THINKING|>", "<|END_THINKING|>"),),
        (Wrapper("<|START_RESPONSE|>", "<|END_RESPONSE|>"), Wrapper("<|START_TEXT|>", "<|END_TEXT|>")),
    ),
    ReasoningFamily(("<|inner_prefix|>",), (Span("<|inner_prefix|>", "<|inner_suffix|>"),)),
    ReasoningFamily(("<|channel>", "<channel|>"), (Span("<|channel>thought", "<channel|>"),)),
    ReasoningFamily(
        ("<|open|>think<|sep|>",),
        (Span("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
        (
            Wrapper("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
            Wrapper("<|close|>message<|sep|>", "<|end_of_msg|>"),
        ),
    ),
    ReasoningFamily(
        ("[BEGIN FINAL RESPONSE]",),
        (Span("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", only_first=True),),
        (Wrapper("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", only_first=True),),
    ),
    ReasoningFamily(
        ("Here is my thought process",),
        (Span("Here is my thought process:", "Here is my response:", only_first=True),),
    ),
    ReasoningFamily(("<think:opensource>",), (Span("<think:opensource>", "</think:opensource>"),)),
    _tagged("think"),
)
# Around the answer of models with think tags: Granite 3.3 and Ernie 4.5 (response), Hunyuan (answer).
THINK_WRAPPERS = ("response", "answer")

_FENCED = named_objects(r"(?P<name>[\w.-]+)\s*(?P<arguments>```.*```|\{.*\})", 'a JSON object with "name"')
_JSON: Parse = either(parse_objects, _FENCED)

CALLS: tuple[CallFamily, ...] = (
    CallFamily(
        "deepseek",
        (("<｜tool▁calls▁begin｜>",), ("<｜tool▁call▁begin｜>",)),
        (
            Span(
                "<｜tool▁call▁begin｜>",
                "<｜tool▁call▁end｜>",
                named_objects(
                    r"(?:function<｜tool▁sep｜>)?(?P<name>[^\s<]+)\s*(?:<｜tool▁sep｜>)?\s*(?P<arguments>.*)",
                    "a tool's name, <｜tool▁sep｜> and a JSON object",
                ),
            ),
        ),
        (Wrapper("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),),
    ),
    CallFamily(
        "dsml",
        (("｜DSML｜",),),
        (Span("<｜DSML｜invoke", "</｜DSML｜invoke>", parse_parameters, keeps_markers=True),),
        (
            Wrapper("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
            Wrapper("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ),
    ),
    CallFamily(
        "kimi",
        (("<|tool_call_argument_begin|>",),),
        (
            Span(
                "<|tool_call_begin|>",
                "<|tool_call_end|>",
                named_objects(
                    r"(?P<id>(?:functions\.)?(?P<name>[^\s<:]+)(?::\d+)?)\s*<\|tool_call_argument_begin\|>\s*(?P<arguments>.*)",
                    "functions.NAME:NUMBER, <|tool_call_argument_begin|> and a JSON object",
                ),
            ),
        ),
        (Wrapper("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),),
    ),
    CallFamily(
        "kimi-3",
        (("<|open|>", "<|close|>"),),
        (Span("<|open|>call", "<|close|>call<|sep|>", parse_open_close),),
        (Wrapper("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),),
    ),
    CallFamily(
        "mistral",
        (("[TOOL_CALLS]",),),
        (
            Span(
                "[TOOL_CALLS]",
                "",
                either(
                    named_objects(
                        r"(?P<name>[\w.-]+)(?:\[CALL_ID\](?P<id>[^\[]*))?\[ARGS\](?P<arguments>.*)",
                        "a list of JSON objects, or a name, [ARGS] and a JSON object",
                    ),
                    parse_objects,
                ),
            ),
        ),
    ),
    CallFamily(
        "minimax-3",
        (("]<]minimax[>[",),),
        (Span("]<]minimax[>[<invoke", "]<]minimax[>[</invoke>", parse_elements, keeps_markers=True),),
        (Wrapper("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),),
    ),
    CallFamily(
        "minimax",
        (("<minimax:tool_call>",),),
        (Span("<invoke name=", "</invoke>", parse_parameters, keeps_markers=True),),
        (Wrapper("<minimax:tool_call>", "</minimax:tool_call>"),),
    ),
    CallFamily("seed", (("<seed:tool_call>",),), (Span("<seed:tool_call>", "</seed:tool_call>", parse_parameters),)),
    CallFamily(
        "qwen-coder",
        (("<tool_call>", "<function="),),
        (Span("<tool_call>", "</tool_call>", either(parse_parameters, _JSON)),),
    ),
    CallFamily(
        "minicpm",
        (("<function name=",),),
        (Span("<function name=", "</function>", parse_parameters, keeps_markers=True),),
    ),
    CallFamily(
        "functionary",
        (("<function=", "</function>"),),
        (
            Span(
                "<function=",
                "</function>",
                named_objects(r"(?P<name>[\w.-]+)>(?P<arguments>.*)", "a tool's name, > and a JSON object"),
            ),
        ),
    ),
    CallFamily(
        "hunyuan-3",
        (("<arg_key", "<tool_call:opensource>"), ("<tool_call:opensource>",), ("<arg_key:opensource>",)),
        (Span("<tool_call:opensource>", "</tool_call:opensource>", parse_pairs),),
        (Wrapper("<tool_calls:opensource>", "</tool_calls:opensource>"),),
    ),
    CallFamily("glm", (("<arg_key>",),), (Span("<tool_call>", "</tool_call>", either(parse_pairs, _JSON)),)),
    CallFamily(
        "lfm2",
        (("<|tool_call_start|>",), ("<|tool_list_start|>",)),
        (Span("<|tool_call_start|>", "<|tool_call_end|>", either(parse_python_calls, parse_objects)),),
        write=write_lfm2,
    ),
    CallFamily("gemma-4", (("<|tool_call>",),), (Span("<|tool_call>", "<tool_call|>", parse_gemma_calls),)),
    CallFamily("apertus", (("<|tools_prefix|>",),), (Span("<|tools_prefix|>", "<|tools_suffix|>", parse_objects),)),
    CallFamily("cohere", (("<|START_ACTION|>",),), (Span("<|START_ACTION|>", "<|END_ACTION|>", parse_objects),)),
    CallFamily(
        "command-r", (("Action:", "directly-answer"),), (Span("Action:", "", parse_objects, is_tentative=True),)
    ),
    CallFamily("nemotron", (("<TOOLCALL>",),), (Span("<TOOLCALL>", "</TOOLCALL>", parse_objects),)),
    CallFamily(
        "solar",
        (("<|tool_call:begin|>",),),
        (
            Span(
                "<|tool_call:begin|>",
                "<|tool_call:end|>",
                named_objects(
                    r"(?P<id>[^<]*)<\|tool_call:name\|>(?P<name>[^<]+)<\|tool_call:args\|>(?P<arguments>.*)",
                    "an id, <|tool_call:name|>, a name, <|tool_call:args|> and a JSON object",
                ),
            ),
        ),
        (Wrapper("<|tool_calls|>", "<|calls|>"),),
    ),
    CallFamily(
        "list", (("<tool_calls>[",), ("<tool_calls>\n{",)), (Span("<tool_calls>", "</tool_calls>", parse_objects),)
    ),
    CallFamily(
        "hermes",
        (("<tool_call>",),),
        (Span("<tool_call>", "</tool_call>", _JSON),),
        (Wrapper("<tool_calls>", "</tool_calls>"),),
        write=write_hermes,
    ),
    CallFamily("hunyuan", (("<tool_calls>",),), (Span("<tool_calls>", "</tool_calls>", _JSON),)),
    CallFamily(
        "phi-4",
        (("<|tool_call|>", "<|/tool_call|>"),),
        (Span("<|tool_call|>", "<|/tool_call|>", parse_objects),),
    ),
    CallFamily(
        "granite",
        (("<|tool_call|>",),),
        (Span("<|tool_call|>", "", parse_objects),),
        write=write_granite,
    ),
    CallFamily("gigachat", (("<|function_call|>",),), (Span("<|function_call|>", "", parse_objects),)),
    CallFamily("firefunction", (("functools[",),), (Span("functools", "", parse_objects, only_first=True),)),
    CallFamily(
        "llama",
        (("<|python_tag|>",), ("ipython", '"parameters"')),
        (
            Span("<|python_tag|>", "", either(parse_objects, parse_python_calls)),
            Span("{", "", parse_bare_objects, keeps_markers=True, only_first=True, is_tentative=True),
        ),
    ),
)

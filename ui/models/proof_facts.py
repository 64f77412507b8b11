"""What was measured of a converted model beside its source, in the user's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from ui import format as fmt

if TYPE_CHECKING:
    from engine.convert.proof import Proof


translate = QCoreApplication.translate


def proof_sentence(proof: Proof) -> str:
    """What was found, in one sentence."""
    text = translate(
        "Proof", "On {n} tokens of text it prefers the same next token as its source at {share} of the positions."
    )
    return text.format(n=fmt.count(proof.n_tokens), share=fmt.percent(proof.top_agreement))


def proof_facts(proof: Proof | None) -> list[tuple[str, str | None]]:
    """Names and figures for a grid; none where there is no proof."""
    if proof is None:
        return []
    routes = proof.route_agreement
    perplexity = translate("Proof", "{own}; the source has {source}").format(
        own=fmt.decimal(proof.perplexity, 2), source=fmt.decimal(proof.source_perplexity, 2)
    )
    divergence = translate("Proof", "{mean} nats; 99 % below {most}").format(
        mean=fmt.significant(proof.divergence), most=fmt.significant(proof.divergence_99)
    )
    return [
        (translate("Proof", "Same next token"), fmt.percent(proof.top_agreement)),
        (translate("Proof", "Same experts"), fmt.percent(sum(routes) / len(routes)) if routes else None),
        (translate("Proof", "Perplexity"), perplexity),
        (translate("Proof", "Divergence"), divergence),
    ]

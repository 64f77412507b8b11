"""Conversations and texts on which the starter model's float32 evaluation is recorded."""

from __future__ import annotations

HUMMINGBIRD_ESSAY = """\
Hummingbirds are among the smallest of birds, and they live faster than almost any other animal with a backbone. A heart
that beats more than a thousand times a minute drives wings that beat fifty times a second, and the bird must visit
hundreds of flowers each day to pay for it. At night, when it cannot feed, a hummingbird lets its temperature fall until
it is barely alive; this state is called torpor. In the morning it shivers for twenty minutes before it can fly again.

The flight itself is unlike that of other birds. A sparrow gains its lift on the down stroke alone, but a \
hummingbird turns
its wing over at the shoulder and gains about a quarter of the lift on the way back, so that it can hang in one place,
move sideways, and even fly backwards out of a flower. Its tongue is forked, and longer than its beak. When the tongue
enters the nectar, its two tips open and small flaps unfold along them; when it is drawn back the flaps close again and
hold the liquid. The whole movement takes less than a twentieth of a second.

Some species cross the Gulf of Mexico without a stop, eight hundred kilometres over open water, on two grams of fat."""

# name -> messages; the template adds its default system prompt where the first message is not a system message
CONVERSATIONS: dict[str, list[dict[str, str]]] = {
    "capital": [{"role": "user", "content": "What is the capital of France?"}],
    "story": [{"role": "user", "content": "Write a short story about a hummingbird that learns to rest."}],
    "code": [{"role": "user", "content": "Write a Python function that returns the n-th Fibonacci number."}],
    "emoji": [{"role": "user", "content": "What do these emoji mean: 🎉 🐦🔥 👩‍🚀?"}],
    "chinese": [{"role": "user", "content": "请用中文介绍一下北京的历史。"}],
    "empty system prompt": [
        {"role": "system", "content": ""},
        {"role": "user", "content": "Name three primary colours."},
    ],
    "own system prompt": [
        {"role": "system", "content": "You are a patient physics teacher. Answer in one sentence."},
        {"role": "user", "content": "Why is the sky blue?"},
    ],
    "several turns": [
        {"role": "user", "content": "Hi! My name is Ada and I keep bees."},
        {"role": "assistant", "content": "Hello Ada! How many hives do you have?"},
        {"role": "user", "content": "Three. What should I do before winter?"},
        {
            "role": "assistant",
            "content": "Check that each hive has enough honey, and close the entrance to a small gap.",
        },
        {"role": "user", "content": "Thank you. What was my name, and what do I keep?"},
    ],
    "digits and accents": [
        {"role": "user", "content": "Translate to English:\n\n\t«Où est la bibliothèque ?»  – 12 345,67 € en 2024…"}
    ],
    "long": [{"role": "user", "content": f"{HUMMINGBIRD_ESSAY}\n\nSummarise this text in two sentences."}],
}

# Lewis Carroll, "Alice's Adventures in Wonderland" (1865), chapter I: in the public domain everywhere.
ENGLISH = """\
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or \
twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it, "and \
what is the use of a book," thought Alice "without pictures or conversations?"

So she was considering in her own mind (as well as she could, for the hot day made her feel very sleepy and \
stupid), whether the pleasure of making a daisy-chain would be worth the trouble of getting up and picking the \
daisies, when suddenly a White Rabbit with pink eyes ran close by her.

There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the \
Rabbit say to itself, "Oh dear! Oh dear! I shall be late!" (when she thought it over afterwards, it occurred to \
her that she ought to have wondered at this, but at the time it all seemed quite natural); but when the Rabbit \
actually took a watch out of its waistcoat-pocket, and looked at it, and then hurried on, Alice started to her \
feet, for it flashed across her mind that she had never before seen a rabbit with either a waistcoat-pocket, or \
a watch to take out of it, and burning with curiosity, she ran across the field after it, and fortunately was \
just in time to see it pop down a large rabbit-hole under the hedge.
"""

# Written for this file.
CODE = '''\
def median(values):
    """Return the middle value of a list of numbers."""
    if not values:
        raise ValueError("median of an empty list")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


for row in [[3, 1, 2], [4.5, 0.5], []]:
    try:
        print(row, median(row))
    except ValueError as error:
        print(f"{row}: {error}")
'''

# The Analects (about 400 BC), book I, then a modern sentence written for this file.
CHINESE = """\
子曰：“学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？”
曾子曰：“吾日三省吾身。”
今天天气很好，我们一起去公园散步吧。
"""

# The two windows of the divergence test: prose; code, then Chinese.
DIVERGENCE_WINDOWS: tuple[str, str] = (ENGLISH, CODE + "\n" + CHINESE)

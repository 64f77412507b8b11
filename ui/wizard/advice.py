"""What to do about each cause of a failure, in the user's language."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject

from app.failures import Cause


@dataclass(frozen=True, slots=True)
class Advice:
    """`title`: what happened, in a few words. `steps`: what to do, the most likely first."""

    title: str
    steps: tuple[str, ...]


class Adviser(QObject):
    """Knows what to do about each cause."""

    def advise(self, cause: Cause) -> Advice:
        """What a page says above the full text of the failure."""
        return {
            Cause.MISSING: lambda: Advice(
                self.tr("A part of the model is missing"),
                (
                    self.tr("Download the file that is named below into the same folder."),
                    self.tr("A download that was interrupted is the usual reason: let its program complete it."),
                ),
            ),
            Cause.UNREADABLE: lambda: Advice(
                self.tr("A file or folder cannot be read"),
                (
                    self.tr("Give your user the right to read it, in the file manager's properties."),
                    self.tr("Is it on a disk that was unplugged, or on a network that is down? Connect it again."),
                ),
            ),
            Cause.CONTRADICTION: lambda: Advice(
                self.tr("Parts of the model contradict each other"),
                (
                    self.tr("Download the whole model again, all files in the same version."),
                    self.tr("If you changed config.json yourself, undo it: below is the value that does not fit."),
                ),
            ),
            Cause.DAMAGED: lambda: Advice(
                self.tr("A file is damaged"),
                (
                    self.tr("Download the file that is named below again."),
                    self.tr("If it is damaged again, check the disk with the system's own tools."),
                ),
            ),
            Cause.UNSAFE: lambda: Advice(
                self.tr("This format can run programs, so it is not opened"),
                (
                    self.tr("Get it in safetensors: most models are published so, by others if not by the author."),
                    self.tr("If it is your own, save it again with save_pretrained(…, safe_serialization=True)."),
                ),
            ),
            Cause.UNSUPPORTED: lambda: Advice(
                self.tr("This kind of model is not known here"),
                (
                    self.tr("Is there a newer version of Colibri? It may know it."),
                    self.tr(
                        "Otherwise choose a model of another architecture; the message below names the known ones."
                    ),
                ),
            ),
            Cause.DISK_FULL: lambda: Advice(
                self.tr("The disk is full"),
                (
                    self.tr("Free some space, for example in the list of models, and try again."),
                    self.tr("Or go back to the plan and choose a smaller kind, or a folder on another disk."),
                ),
            ),
            Cause.TARGET: lambda: Advice(
                self.tr("The file cannot be written there"),
                (
                    self.tr("Go back to the plan and choose another name or another folder."),
                    self.tr("Or give your user the right to write to this folder."),
                ),
            ),
            Cause.IN_USE: lambda: Advice(
                self.tr("Another Colibri is writing this file"),
                (self.tr("Wait for it to end, or cancel it there, and try again."),),
            ),
            Cause.MEMORY: lambda: Advice(
                self.tr("There is too little memory"),
                (
                    self.tr("Close other programs, and unload the model in the list of models."),
                    self.tr("Then try again."),
                ),
            ),
            Cause.CHOICE: lambda: Advice(
                self.tr("These choices do not go together"),
                (self.tr("Go back to the plan and change what is named below."),),
            ),
            Cause.OTHER: lambda: Advice(
                self.tr("It did not work"),
                (self.tr("Read the message below; it says what was expected and what was found."),),
            ),
            Cause.FAULT: lambda: Advice(
                self.tr("This is a fault of Colibri"),
                (
                    self.tr("Try again: your files are as they were."),
                    self.tr("If it happens again, report it with the message below; the log has more."),
                ),
            ),
        }[cause]()

"""The sub-commands of `colibri`, one small file each."""

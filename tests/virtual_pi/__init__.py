"""A small virtual machine with a simulated GPIO chip, a pretended OLED and serial ports; see README.md."""

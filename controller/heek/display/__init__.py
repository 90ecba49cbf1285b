"""The OLED: from the session's view to a picture, and from the picture to the panel."""

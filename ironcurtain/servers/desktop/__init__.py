"""
The server for the desktop: what is on the screen and in the air, and input to applications.

What a call names (application, window, element) is verified when it acts. What comes from the screen is data.
"""

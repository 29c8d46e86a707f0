"""HTTP and WebSocket: parse, authorise, call the core, render."""

//! The page that a server gives: it asks for its script, its style and the tables.

/// The document. It has no data, so it is the same for all captures.
pub const SHELL: &str = "<!DOCTYPE html>\n\
<html lang=\"en\">\n\
<head>\n\
<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<meta name=\"color-scheme\" content=\"light dark\">\n\
<title>Stepscope</title>\n\
<link rel=\"icon\" href=\"data:,\">\n\
<link rel=\"stylesheet\" href=\"app.css\">\n\
</head>\n\
<body>\n\
<div id=\"app\"><p role=\"status\">Reading the captures...</p></div>\n\
<noscript><p>This page needs JavaScript. `stepscope show` and `stepscope rank` print tables.</p></noscript>\n\
<script src=\"app.js\"></script>\n\
</body>\n\
</html>\n";

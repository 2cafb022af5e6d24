"""Pod security standards: levels and versions, the checks of each, and the plugin that applies them."""

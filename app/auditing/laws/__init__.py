"""The law of the step that serves, asked of the step itself, and the conditions of its proof."""

// Package docs embeds the chapters that the console shows.
package docs

import _ "embed"

// Operations is the runbook.
//
//go:embed operations.md
var Operations string

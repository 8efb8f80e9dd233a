// Package docs embeds the chapters that the program shows.
package docs

import _ "embed"

// Operations is the runbook.
//
//go:embed operations.md
var Operations string

// OperationsZH is the runbook in Chinese; its chapters have the same anchors.
//
//go:embed operations.zh-CN.md
var OperationsZH string

// Errors is the page of the codes of errors.
//
//go:embed errors.md
var Errors string

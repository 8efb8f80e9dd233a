// Package docs embeds the chapters that the console shows.
package docs

import _ "embed"

// Operations is the runbook.
//
//go:embed operations.md
var Operations string

// OperationsZH is what somebody on call needs of it, in Chinese; its chapters have the same anchors.
//
//go:embed operations.zh-CN.md
var OperationsZH string

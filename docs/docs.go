// Package docs embeds the chapters that the program shows.
package docs

import (
	"embed"
	"fmt"
)

//go:embed operations
var operations embed.FS

// operationsPages are the pages of the operations manual, in the order in which it is read.
var operationsPages = []string{
	"run", "health", "alerts", "troubleshooting", "queues", "money", "settings", "storage", "upgrade", "keys", "operators", "decisions", "audit",
}

// Operations returns the pages of the operations manual. The Chinese ones have the same anchors.
func Operations(language string) []string {
	suffix := ".md"
	if language == "zh" {
		suffix = ".zh-CN.md"
	}
	pages := make([]string, len(operationsPages))
	for i, name := range operationsPages {
		page, err := operations.ReadFile("operations/" + name + suffix)
		if err != nil {
			panic(fmt.Sprintf("docs: %v", err)) // it is embedded
		}
		pages[i] = string(page)
	}
	return pages
}

// Errors is the page of the codes of errors.
//
//go:embed errors.md
var Errors string

// API is the page of the rules that hold for every call.
//
//go:embed api.md
var API string

package views

import (
	"backstop/internal/console"
	"backstop/internal/evidence"
)

// EvidenceData is one order's story as it is handed out.
type EvidenceData struct {
	StoryData
	Evidence *console.Evidence
	File     *evidence.File
	Text     string // the signed file itself
}

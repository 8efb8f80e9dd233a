package views

import (
	"backstop/internal/console"
	"backstop/internal/evidence"
)

// fileShown is up to how many bytes the signed file stands on its page.
const fileShown = 256 << 10

// EvidenceData is one order's story as it is handed out.
type EvidenceData struct {
	StoryData
	Evidence *console.Evidence
	File     *evidence.File
	Text     string // the signed file itself
}

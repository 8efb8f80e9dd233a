package wording

import (
	"encoding/json"
	"testing"

	"backstop/views/ui"
)

func TestAChangeOfSettingsIsSaidInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	for language, want := range map[string][]string{
		"zh": {"未设置 → 摘要 3f9c", "•••• 4711 → •••• 0815, 摘要 77aa", "a digest of → none of them"},
		"en": {"unset → digest 3f9c", "•••• 4711 → •••• 0815, digest 77aa", "a digest of → none of them"},
	} {
		facts := ProposalFacts(&ui.Page{Language: language}, "merchant m1", json.RawMessage(`{"changes": [
			{"field": "api_key", "old": "unset", "new": "digest 3f9c"},
			{"field": "number", "old": "•••• 4711", "new": "•••• 0815, digest 77aa"},
			{"field": "name", "old": "a digest of", "new": "none of them"}]}`), "")
		for i, fact := range facts {
			if fact.Text != want[i] {
				t.Errorf("%s: %q, want %q", language, fact.Text, want[i])
			}
		}
		if len(facts) != len(want) {
			t.Errorf("%s: %d facts", language, len(facts))
		}
	}
}

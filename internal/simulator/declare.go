package simulator

import (
	"fmt"
	"maps"

	"gopkg.in/yaml.v3"
)

// Settings returns what `apply` declares for an account served at base; "" = only what verifies
// callbacks, so that nothing can be queried.
func (a *Account) Settings(base string) map[string]any {
	config := a.config()
	if base != "" {
		maps.Copy(config, a.calls(base))
	}
	return map[string]any{"code": a.Code, "kind": a.Kind, "enabled": true, "config": config}
}

// Declaration returns the `apply` file for all accounts, served at base
// ("http://127.0.0.1:9090").
func (s *Simulator) Declaration(base string) ([]byte, error) {
	var suppliers []map[string]any
	for _, a := range s.accounts {
		suppliers = append(suppliers, a.Settings(base))
	}
	text, err := yaml.Marshal(map[string]any{"suppliers": suppliers})
	if err != nil {
		return nil, fmt.Errorf("write the declaration: %w", err)
	}
	return text, nil
}

package simulator

import (
	"fmt"
	"maps"

	"gopkg.in/yaml.v3"
)

// Settings is what `apply` declares of an account that is served at base: with "" only what
// callbacks are checked with, so that nothing can be asked.
func (a *Account) Settings(base string) map[string]any {
	config := a.config()
	if base != "" {
		maps.Copy(config, a.calls(base))
	}
	return map[string]any{"code": a.Code, "kind": a.Kind, "enabled": true, "config": config}
}

// Declaration is the file for `apply` of all accounts, served at base
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

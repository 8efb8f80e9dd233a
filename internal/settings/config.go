package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"backstop/internal/base/seal"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// configPlace is the place of a secret field of a supplier's config.
func configPlace(code, field string) seal.Place {
	return seal.Place{Table: "suppliers", Row: code, Field: "config." + field}
}

// SealConfig seals the secret fields of a supplier's config: a text, or each text
// of a list.
func SealConfig(kind supplier.Kind, keys *seal.Keyring, code string, config json.RawMessage) (json.RawMessage, error) {
	return MapConfig(kind, code, config, sealing(keys))
}

// OpenConfig returns a supplier's config with its secret fields in plain text.
func OpenConfig(kinds supplier.Kinds, keys *seal.Keyring, r SupplierRow) (json.RawMessage, error) {
	kind, err := kinds.Find(r.Kind)
	if err != nil {
		return nil, err
	}
	return MapConfig(kind, r.Code, r.Config, opening(keys))
}

// MapConfig returns a supplier's config with every secret changed.
func MapConfig(kind supplier.Kind, code string, config json.RawMessage, change MapSecret) (json.RawMessage, error) {
	fields, err := decodeConfig(config)
	if err != nil {
		return nil, err
	}
	eachSecret(kind, fields, func(f supplier.Field, v any) any {
		text, ok := v.(string)
		if !ok || err != nil {
			return v
		}
		changed, wrong := change(configPlace(code, f.Name), text)
		if wrong != nil {
			err = fmt.Errorf("config.%s: %w", f.Name, wrong)
		}
		return changed
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Entry returns the supplier as declared, ready to verify callbacks; it cannot be called.
func (v *Supplier) Entry(kinds supplier.Kinds) (supplier.Entry, error) {
	kind, err := kinds.Find(v.Kind)
	if err != nil {
		return supplier.Entry{}, err
	}
	config, err := plainConfig(kind, v.Config)
	if err != nil {
		return supplier.Entry{}, err
	}
	adapter, err := kind.New(v.Code, config, nil)
	return supplier.Entry{Code: v.Code, Name: v.Name, Kind: v.Kind, Enabled: v.Enabled, AllowIPs: v.AllowIPs, Adapter: adapter}, err
}

// SetConfig sets a supplier's config from plain text.
func (v *Supplier) SetConfig(kind supplier.Kind, config map[string]any) {
	v.Config = maps.Clone(config)
	eachSecret(kind, v.Config, func(_ supplier.Field, v any) any {
		if text, ok := v.(string); ok {
			return NewSecret(text)
		}
		return v
	})
	v.SetNew("config")
}

// plainConfig returns a config with its secrets in plain text, as its kind parses it.
func plainConfig(kind supplier.Kind, config map[string]any) (json.RawMessage, error) {
	plain := maps.Clone(config)
	eachSecret(kind, plain, func(_ supplier.Field, v any) any {
		if s, ok := v.(Secret); ok {
			return s.plain
		}
		return v
	})
	raw, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return raw, nil
}

// decodeConfig parses a supplier's config; numbers keep their digits.
func decodeConfig(raw json.RawMessage) (config map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if config == nil {
		return nil, errors.New("config: null")
	}
	return config, nil
}

// eachSecret changes the secret fields of a config: a value, or each value of a list.
func eachSecret(kind supplier.Kind, config map[string]any, change func(f supplier.Field, v any) any) {
	for f := range kind.Secrets() {
		switch v := config[f.Name].(type) {
		case nil:
		case []any:
			all := slices.Clone(v)
			for i := range all {
				all[i] = change(f, all[i])
			}
			config[f.Name] = all
		default:
			config[f.Name] = change(f, v)
		}
	}
}

// SupplierByCode reads the stored supplier with this code.
func SupplierByCode(ctx context.Context, q bun.IDB, code string) (*SupplierRow, error) {
	var rows []*SupplierRow
	if err := q.NewSelect().Model(&rows).Where("su.code = ?", code).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read supplier %s: %w", code, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no supplier %s", code)
	}
	return rows[0], nil
}

// SupplierSecret reads a secret field of a supplier's config. Errors: those of the database, and
// of a secret that cannot be opened here.
func (s *Store) SupplierSecret(ctx context.Context, code, field string) (string, error) {
	row, err := SupplierByCode(ctx, s.db.Read, code)
	if err != nil {
		return "", err
	}
	config, err := decodeConfig(row.Config)
	if err != nil {
		return "", err
	}
	sealed, _ := config[field].(string)
	plain, err := s.keys.Open(configPlace(code, field), sealed)
	if err != nil {
		return "", fmt.Errorf("open config.%s of supplier %s: %w", field, code, err)
	}
	return string(plain), nil
}

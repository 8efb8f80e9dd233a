package suppliertest

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"backstop/internal/supplier"
)

// toyKind makes toyCallers; skip names the mistake of its settings.
func toyKind(skip careless) supplier.Kind {
	return supplier.Kind{New: func(_ string, raw json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
		var c struct {
			Key     string `json:"key"`
			URL     string `json:"url"`
			CallKey string `json:"call_key"`
		}
		if err := supplier.DecodeConfig(raw, &c); err != nil {
			return nil, err
		}
		bare := &toy{key: c.Key}
		whole := &toyCaller{toy: toy{key: c.Key}, out: out}
		missing := &supplier.FieldError{Field: "call_key", Problem: "missing"}
		switch {
		case skip == "callbacks of another account" && c.CallKey != "":
			return &otherToy{bare}, nil
		case skip == "callbacks before calls" && c.URL != "" && c.CallKey == "":
			return bare, supplier.ForCalls(missing)
		case c.Key == "" && skip == "no adapter without its key":
			return bare, &supplier.FieldError{Field: "key", Problem: "missing"}
		case c.Key == "":
			return nil, &supplier.FieldError{Field: "key", Problem: "missing"}
		case c.URL != "" && c.CallKey == "":
			switch skip {
			case "the mark of calls":
				return bare, missing
			case "the field":
				return bare, supplier.ForCalls(errors.New("half a set"))
			case "half a set":
				return bare, nil
			case "callbacks in spite of it":
				return nil, supplier.ForCalls(missing)
			case "no abilities by half a set":
				return whole, supplier.ForCalls(missing)
			}
			return bare, supplier.ForCalls(missing)
		case c.URL == "" || skip == "abilities":
			return bare, nil
		case out == nil && skip != "no abilities without a client":
			return bare, nil
		}
		return whole, nil
	}}
}

type otherToy struct{ *toy }

func (otherToy) Account() string { return "toy:S2" }

func toySettings(skip careless) Settings {
	return Settings{
		Kind: toyKind(skip),
		Bare: map[string]any{"key": toyKey}, Calls: map[string]any{"url": "https://toy.example", "call_key": "k"},
		WrongCalls: map[string][]map[string]any{"call_key": {{"url": "https://toy.example"}}},
		Wrong:      []map[string]any{{"key": ""}, {"kee": "x"}},
		Message:    asReceived(toySuite("").Message(Change{})), Want: toySuite("").Want,
	}
}

func asReceived(r *supplier.Request) *supplier.Request {
	r.ReceivedAt = Now
	return r
}

func TestCarefulSettingsPass(t *testing.T) {
	t.Parallel()
	RunSettings(t, toySettings(""))
}

func TestCarelessSettingsAreCaught(t *testing.T) {
	t.Parallel()
	const named, none = "WrongSettingsForCallsAreNamedAndTakeCallbacks", "WrongSettingsForCallbacksMakeNoAdapter"
	for skip, by := range map[careless]string{
		"abilities":                     "WholeSettingsMakeAbilities",
		"callbacks of another account":  "WholeSettingsMakeAbilities",
		"no abilities without a client": "WithoutAClientThereAreNone",
		"the mark of calls":             named,
		"the field":                     named,
		"half a set":                    named,
		"callbacks in spite of it":      named,
		"no abilities by half a set":    named,
		"callbacks before calls":        none,
		"no adapter without its key":    none,
	} {
		t.Run(string(skip), func(t *testing.T) {
			var failed []string
			for _, c := range settingsClaims {
				watch := &watcher{}
				c.check(&maker{watch, toySettings(skip)})
				if watch.seen.Load() {
					failed = append(failed, c.name)
				}
			}
			if !slices.Contains(failed, by) {
				t.Errorf("settings without %q fail %v, want %s among them", skip, failed, by)
			}
		})
	}
}

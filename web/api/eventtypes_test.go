package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"backstop/internal/notify"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func decode(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// What merchants receive is held against the schemas by the tests of the whole program.
func TestEachTypeOfNotificationHasASchemaAndAnExample(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range EventTypes() {
		names = append(names, e.Type)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(e.Type, decode(t, e.Schema)); err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		schema, err := compiler.Compile(e.Type)
		if err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		if err := schema.Validate(decode(t, e.Example)); err != nil {
			t.Errorf("the example of %s is not as its schema: %v", e.Type, err)
		}
		for what, spoil := range map[string]func(body map[string]any){
			"another type":            func(body map[string]any) { body["type"] = "order.lost" },
			"data without a merchant": func(body map[string]any) { delete(body["data"].(map[string]any), "merchant") },
		} {
			body := decode(t, e.Example).(map[string]any)
			if spoil(body); schema.Validate(body) == nil {
				t.Errorf("%s: %s is as its schema", e.Type, what)
			}
		}
	}
	if want := append(slices.Clone(notify.Types), notify.Ping); !slices.Equal(names, want) {
		t.Errorf("%q\nwant %q", names, want)
	}
}

func TestEventTypesAreServedToAnyone(t *testing.T) {
	t.Parallel()
	served := open(t).Api(t, "", http.MethodGet, eventTypesPath, "")
	if served.Status != http.StatusOK || strings.Count(served.Body, `"$schema"`) != len(EventTypes()) {
		t.Errorf("%d: %s", served.Status, served.Body)
	}
}

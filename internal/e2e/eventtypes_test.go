package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"backstop/web/api"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// eventSchemas are the schemas of notifications by type, as the API serves them.
var eventSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	schemas := map[string]*jsonschema.Schema{}
	for _, e := range api.EventTypes() {
		text, err := json.Marshal(e.Schema)
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(e.Type, document); err != nil {
			return nil, err
		}
		if schemas[e.Type], err = compiler.Compile(e.Type); err != nil {
			return nil, err
		}
	}
	return schemas, nil
})

// describedInCatalogue checks a notification against the schema of its type.
func describedInCatalogue(body []byte) error {
	schemas, err := eventSchemas()
	if err != nil {
		return err
	}
	var kind struct{ Type string }
	if err := json.Unmarshal(body, &kind); err != nil {
		return err
	}
	schema, ok := schemas[kind.Type]
	if !ok {
		return fmt.Errorf("there is no type %q", kind.Type)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(document)
}

// checkNotifications holds what the merchant of the world received against the catalogue.
func (w *world) checkNotifications() {
	for _, r := range w.merchant.Requests() {
		if err := describedInCatalogue(r.Body); err != nil {
			w.t.Errorf("a notification is not as in the catalogue of event types: %v\n%s", err, r.Body)
			return
		}
	}
}

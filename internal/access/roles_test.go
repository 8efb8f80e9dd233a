package access

import "testing"

func TestUnknownRolesAreNoRole(t *testing.T) {
	t.Parallel()
	var scanned Roles
	if err := scanned.Scan(nil); err != nil {
		t.Fatal(err)
	}
	for name, unknown := range map[string]Roles{
		"the zero value": {}, "no text": RolesOf(""), "another text": RolesOf("root"), "another case": RolesOf("LEAD"), "NULL": scanned,
	} {
		if unknown != (Roles{}) || unknown.HasAny(append([]string{""}, AllRoles...)...) || unknown.Has("") || unknown.String() != "" {
			t.Errorf("%s is %+v", name, unknown)
		}
	}
	for _, role := range AllRoles {
		r := RolesOf(role)
		stored, err := r.Value()
		var read Roles
		if err != nil || read.Scan(stored) != nil || read != r {
			t.Errorf("%s is stored as %v and read as %+v, %v", role, stored, read, err)
		}
		for _, other := range append([]string{""}, AllRoles...) {
			if r.Has(other) != (other == role) {
				t.Errorf("%s has %q: %t", role, other, r.Has(other))
			}
		}
	}
	if err := new(Roles).Scan(7); err == nil {
		t.Error("a number is read as roles")
	}
}

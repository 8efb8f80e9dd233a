package wording_test

import (
	"testing"

	"backstop/internal/access"
	"backstop/views/wording"
)

func TestEveryPermissionAndRoleSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, p := range access.Permissions {
		if x := wording.Permissions[p]; x.ZH == "" || x.EN == "" {
			t.Errorf("the permission %s has no text", p)
		}
	}
	for _, role := range access.BuiltIn {
		if x := wording.RoleDoes[role]; x.ZH == "" || x.EN == "" {
			t.Errorf("the role %s does not say what it is for", role)
		}
	}
	if len(wording.Permissions) != len(access.Permissions) || len(wording.RoleDoes) != len(access.BuiltIn) {
		t.Error("there are texts of what no longer exists")
	}
}

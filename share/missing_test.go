package share

import "testing"

func TestMissing(t *testing.T) {
	type options struct {
		Conn *int
		Name string
		On   func()
		More int
	}
	one := 1
	for want, o := range map[string]options{
		"loop: Conn is missing": {Name: "a", On: func() {}},
		"loop: Name is missing": {Conn: &one, On: func() {}},
		"loop: On is missing":   {Conn: &one, Name: "a"},
	} {
		if err := Missing("loop", o, "Conn", "Name", "On"); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Missing("loop", options{Conn: &one, Name: "a", On: func() {}}, "Conn", "Name", "On"); err != nil {
		t.Error(err)
	}
}

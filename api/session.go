package api

import "time"

// Session is who asks, and whether people can sign in.
type Session struct {
	// Name is how the audit log calls whoever asks; "" = nobody that is known.
	Name string `json:"name"`

	// Role is view, operate or admin; "" = none.
	Role string `json:"role"`

	// SignedIn says that it is a person who has signed in, and Ends when that ends.
	SignedIn bool       `json:"signed_in"`
	Ends     *time.Time `json:"ends"`

	// SignIn is where a browser signs in; "" = nobody can.
	SignIn string `json:"sign_in"`
}

// SignedOut is what became of a session that was ended.
type SignedOut struct {
	// Next is where the provider ends its own session; "" = it does not say.
	Next string `json:"next"`
}

package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// pending is a sign-in that is under way. It travels in a cookie, sealed.
type pending struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Until    time.Time `json:"u"`
}

var errSealed = errors.New("signin: the cookie was not made here")

// seal writes and reads what only this process can read.
type seal struct{ aead cipher.AEAD }

func newSeal() seal {
	var key [32]byte
	rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // a key of 32 bytes is one
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the cipher is AES
	}
	return seal{aead}
}

func (s seal) close(p pending) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // text and a time always have a form
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil))
}

func (s seal) open(cookie string) (p pending, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return p, errSealed
	}
	text, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(text, &p) != nil {
		return p, errSealed
	}
	return p, nil
}

package sse

// Held is how many bytes the scanner keeps for itself, beyond the last piece.
func (s *Scanner) Held() int { return cap(s.part) + cap(s.buf) + cap(s.name) }

// LetGo lets go of the text of the event under way, which will be reported as
// too large. It is called between a Next that reported false and a Feed.
func (s *Scanner) LetGo() {
	s.forget()
	if s.partLen > 0 && s.part[0] != ':' {
		s.partLen = max(s.partLen, s.max()+1) // too long a line, from here on
	}
	if s.partLen > 0 {
		s.part = append([]byte(nil), s.part[:overLong]...)
	} else {
		s.part = nil
	}
	if s.hasData {
		s.tooLarge()
	}
	s.buf = nil
}

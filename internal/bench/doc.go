// Package bench measures an OpenAI-compatible URL as its users see it: level by
// level, with so many users at once (closed loop) or so many requests per second
// (open loop), and says what one of them got.
//
// Definitions, the same as in the whole house: TTFT is request sent to first token.
// TPS is tokens after the first chunk over the time they took, and of a level tokens
// over stream-seconds, so that each second of a stream weighs the same. TPOT is
// 1/TPS of one stream. E2E is request sent to last token. TTFT, TPOT and E2E are of
// streams that came to their end; one that is under way when its level is over
// counts in TPS as far as it came. Streams that began within the warm-up load the
// engine and count in nothing.
//
// Goodput is requests per second that met the SLO. A request that was shed or has
// failed did not. Of repeats the mean is shown, with the 95 % confidence of Student's
// t of that mean.
package bench

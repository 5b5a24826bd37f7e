// What changes something needs a role: of the admin token, which the page keeps in
// memory and nowhere else, or of somebody who has signed in. No button that would
// need it is shown before.

import { attr, byId, text } from "./dom.js";

const toastFor = 6000; // ms

const nobody = { name: "", role: "", signed_in: false, sign_in: "" };

export class Access {
  token = "";
  session = nobody;
  constructor(changed) {
    this.changed = changed;
    const dialog = byId("access"), field = byId("access-token");
    byId("unlock").addEventListener("click", () => {
      if (this.token) this.lock();
      else if (this.session.signed_in) this.signOut();
      else this.ask();
    });
    byId("access-cancel").addEventListener("click", () => dialog.close());
    byId("access-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.token = field.value.trim();
      dialog.close();
      this.show();
    });
    dialog.addEventListener("close", () => (field.value = ""));
    this.refresh();
  }

  // refresh asks the gateway who looks.
  async refresh() {
    try {
      const answer = await fetch("/api/v1/session");
      if (answer.ok) this.session = await answer.json();
      else if (answer.status === 401 || answer.status === 403) this.session = { ...nobody, sign_in: this.session.sign_in };
      this.show();
    } catch {
      // the page says by itself that the connection is lost
    }
  }

  // may says whether buttons that change something are shown.
  get may() {
    return this.token !== "" || this.session.role === "operate" || this.session.role === "admin";
  }

  get headers() {
    return this.token ? { Authorization: "Bearer " + this.token } : {};
  }

  // ask has whoever looks sign in, or asks for the token.
  ask() {
    if (this.session.sign_in && !this.session.signed_in) location.assign(this.session.sign_in);
    else byId("access").showModal();
  }

  // signOut ends the session here, and where the provider says that its own ends.
  async signOut() {
    try {
      const answer = await fetch("/oidc/logout", { method: "POST" });
      const { next } = await answer.json();
      if (next) location.assign(next);
      else location.reload();
    } catch {
      this.say("Pacer did not answer; you are still signed in.", true);
    }
  }

  lock() {
    this.token = "";
    this.show();
  }

  show() {
    const { signed_in: inside, sign_in: door, name } = this.session;
    text(byId("unlock"), this.token ? "Lock again" : inside ? "Sign out" : door ? "Sign in" : "Read only");
    attr(byId("unlock"), "aria-haspopup", this.token || inside || door ? null : "dialog");
    attr(byId("unlock"), "title", inside ? name : null);
    this.changed();
  }

  // change posts to path and says what became of it.
  async change(path, done) {
    try {
      const answer = await fetch(path, { method: "POST", headers: this.headers });
      if (answer.ok) return this.say(done, false);
      const { error } = await answer.json();
      if (answer.status === 401 || answer.status === 403) this.lock();
      this.say(error.message, true);
    } catch {
      this.say("Pacer did not answer; nothing is known to have changed.", true);
    }
  }

  say(words, bad) {
    const toast = byId("toast");
    text(toast, words);
    attr(toast, "class", bad ? "toast bad" : "toast");
    attr(toast, "hidden", false);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => attr(toast, "hidden", true), toastFor);
  }
}

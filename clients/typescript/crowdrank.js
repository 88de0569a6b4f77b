// Client of a collection service of `crowdrank serve`; types are in crowdrank.d.ts. No dependency: fetch is enough.
const PASSING = new Set([429, 500, 502, 503, 504, 507]);

export class CallError extends Error {
  constructor(status, type, message) {
    super(message);
    Object.assign(this, { name: "CallError", status, type });
  }
}

export class Client {
  constructor(url, token = "", { patience = 300 } = {}) {
    Object.assign(this, { url: url.replace(/\/+$/, ""), token, patience });
  }

  // not repeated by itself: an answer that was lost may have used up the invite
  static async join(url, invite, name, options) {
    const client = new Client(url, "", { ...options, patience: 0 });
    const body = await client.call("POST", "/join", name === undefined ? { invite } : { invite, name });
    if (!body.token) throw new CallError(400, "invalid", "this invite is for a person; ask the owner for one with kind 'program'");
    return new Client(url, body.token, options);
  }

  requests(n = 1) {
    return this.call("POST", "/requests", { n });
  }

  submit(judgments) {
    const made = judgments.map((one) => ({ submission: crypto.randomUUID(), seconds: null, ...one }));
    return this.call("POST", "/judgments/batch", { judgments: made }).then((body) => body.results);
  }

  async skip(request, reason = "") {
    await this.call("POST", `/requests/${request}/skip`, { reason });
  }

  me() {
    return this.call("GET", "/me");
  }

  // an answer that fails in passing is asked for again; submissions make a repeat harmless
  async call(method, path, body) {
    const end = Date.now() + 1000 * this.patience;
    for (let wait = 0.5; ; wait = Math.min(2 * wait, 30)) {
      let problem;
      try {
        const answer = await fetch(`${this.url}/api/v1${path}`, {
          method,
          headers: { "content-type": "application/json", ...(this.token ? { authorization: `Bearer ${this.token}` } : {}) },
          body: body === undefined ? undefined : JSON.stringify(body),
        });
        const text = await answer.text();
        if (answer.ok) return text ? JSON.parse(text) : {};
        let error = {};
        try {
          error = JSON.parse(text).error ?? {};
        } catch {}
        problem = new CallError(answer.status, error.type ?? "unknown", error.message ?? `the service answered ${answer.status}`);
        if (!PASSING.has(answer.status)) throw problem;
      } catch (error) {
        if (error === problem) throw error;
        problem = error;
      }
      if (Date.now() + 1000 * wait > end) throw problem;
      await new Promise((done) => setTimeout(done, 1000 * wait));
    }
  }
}

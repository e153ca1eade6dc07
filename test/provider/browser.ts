import { clientAddress } from '../rig/servers/address.ts';

/** A minimal browser for logins: keeps cookies, follows no redirects. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #address = clientAddress();

  /** The Set-Cookie lines of the last answer. */
  setCookies: string[] = [];

  /** Another program with a copy of the cookies. */
  copy(): Browser {
    const copy = new Browser();
    for (const [name, value] of this.cookies) copy.cookies.set(name, value);
    return copy;
  }

  /** The Cookie header. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  async go(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { cookie } = this;
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { ...init.headers, 'x-forwarded-for': this.#address, ...(cookie && { cookie }) },
    });
    this.keep(response.headers.getSetCookie());
    return response;
  }

  /** Stores the Set-Cookie lines of an answer. */
  keep(setCookies: string[]): void {
    this.setCookies = setCookies;
    for (const line of setCookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }

  /** The redirect target of an answer. */
  async redirectOf(url: string | URL, init?: RequestInit): Promise<string> {
    const response = await this.go(url, init);
    await response.body?.cancel();
    return response.headers.get('location') ?? `(${response.status} without a location)`;
  }

  get session(): string | undefined {
    return this.cookies.get('auth_session');
  }
}

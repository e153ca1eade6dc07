import { clientAddress } from '../rig/address.ts';

/** One browser, as far as logins need it: it keeps cookies and follows no redirect by itself. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #address = clientAddress();

  /** The Set-Cookie lines of the last answer. */
  setCookies: string[] = [];

  async go(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { ...init.headers, 'x-forwarded-for': this.#address, ...(cookie && { cookie }) },
    });
    this.setCookies = response.headers.getSetCookie();
    for (const line of this.setCookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /** Where an answer sends the browser. */
  async redirectOf(url: string | URL, init?: RequestInit): Promise<string> {
    const response = await this.go(url, init);
    await response.body?.cancel();
    return response.headers.get('location') ?? `(${response.status} without a location)`;
  }

  get session(): string | undefined {
    return this.cookies.get('auth_session');
  }
}

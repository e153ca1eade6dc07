import { lazy } from '../lazy.ts';

/** RFC 6238 with what every authenticator app knows: SHA-1, six digits, 30 seconds. */
const settings = { algorithm: 'SHA1', digits: 6, period: 30 };
const PERIOD_MS = settings.period * 1000;
/** Codes of the step before and of the next one are right too: RFC 6238 section 5.2. */
const WINDOW = 1;
/** RFC 4226 section 4, R6. */
const SECRET_BYTES = 20;

/** Loaded with the first authenticator app. */
const loadOtp = lazy(() => import('otpauth'));
const loadQr = lazy(() => import('uqr'));

/** What a user enters in an authenticator app. */
export interface TotpSetup {
  /** In base32. */
  secret: string;
  /** https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
  uri: string;
  /** The same as a QR code: an SVG image without styles, which the Content-Security-Policy could forbid. */
  qr: string;
}

/** A new random secret, with the names that the app shows. */
export async function newTotpSetup({ issuer, label }: { issuer: string; label: string }): Promise<TotpSetup> {
  const [{ TOTP, Secret }, { renderSVG }] = await Promise.all([loadOtp(), loadQr()]);
  const secret = new Secret({ size: SECRET_BYTES });
  const uri = new TOTP({ ...settings, secret, issuer, label }).toString();
  return { secret: secret.base32, uri, qr: renderSVG(uri, { ecc: 'M', border: 4 }) };
}

/** The time step of a right code; undefined for a wrong one. `now` in milliseconds since 1970. */
export async function stepOf(code: string, secret: string, now: number): Promise<number | undefined> {
  const { TOTP } = await loadOtp();
  const delta = new TOTP({ ...settings, secret }).validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? undefined : Math.floor(now / PERIOD_MS) + delta;
}

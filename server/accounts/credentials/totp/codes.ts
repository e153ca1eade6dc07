import { lazy } from '../../../lib/lazy.ts';

/** RFC 6238 with the parameters that every authenticator app supports: SHA-1, six digits, 30 seconds. */
const settings = { algorithm: 'SHA1', digits: 6, period: 30 };
const PERIOD_MS = settings.period * 1000;
/** The previous and the next step are accepted too (RFC 6238 section 5.2). */
const WINDOW = 1;
/** RFC 4226 section 4, R6. */
const SECRET_BYTES = 20;
/** Scanners read every mask. Choosing the best of eight takes six times as long. */
const MASK = 0;

/** Loaded for the first authenticator app. */
const loadOtp = lazy(() => import('otpauth'));
const loadQr = lazy(() => import('uqr'));

/** The values to enter in an authenticator app. */
export interface TotpSetup {
  /** In base32. */
  secret: string;
  /** https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
  uri: string;
  /** The same as a QR code: an SVG image without styles, which a Content-Security-Policy could block. */
  qr: string;
}

/** A new random secret, with the names shown by the app. */
export async function newTotpSetup({ issuer, label }: { issuer: string; label: string }): Promise<TotpSetup> {
  const [{ TOTP, Secret }, { renderSVG }] = await Promise.all([loadOtp(), loadQr()]);
  const secret = new Secret({ size: SECRET_BYTES });
  const uri = new TOTP({ ...settings, secret, issuer, label }).toString();
  return { secret: secret.base32, uri, qr: renderSVG(uri, { ecc: 'M', border: 4, maskPattern: MASK }) };
}

/** The time step of a right code; undefined for a wrong one. `now` in milliseconds since 1970. */
export async function stepOf(code: string, secret: string, now: number): Promise<number | undefined> {
  const { TOTP } = await loadOtp();
  const delta = new TOTP({ ...settings, secret }).validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? undefined : Math.floor(now / PERIOD_MS) + delta;
}

import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';

interface Keys {
  region: string;
  accessKey: string;
  secretKey: string;
}

interface PresignedRequest {
  method: string;
  /** Of characters that an address holds as they are. */
  path: string;
  /** Those that the address binds, their names in lower case. */
  headers: Record<string, string>;
  expiresInSeconds: number;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

/**
 * AWS Signature Version 4 in the query (docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html), for the path
 * style, which every storage understands. minio cannot bind type and length; the libraries that can take four times as long
 * for an address. It is good under the name in `endpoint` only: the signature holds the Host header.
 */
export function presigner({ region, accessKey, secretKey }: Keys, endpoint: string) {
  const { host, origin } = new URL(endpoint);
  const keyOf = signingKeys(secretKey, region);

  return ({ method, path, headers, expiresInSeconds }: PresignedRequest): string => {
    const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
    const day = time.slice(0, 8);
    const scope = `${day}/${region}/s3/aws4_request`;
    const signed = Object.entries({ host, ...headers }).sort(([a], [b]) => (a < b ? -1 : 1));
    const names = signed.map(([name]) => name).join(';');
    // In the order of their names, as the signature wants them.
    const query = Object.entries({
      'X-Amz-Algorithm': ALGORITHM,
      'X-Amz-Credential': `${accessKey}/${scope}`,
      'X-Amz-Date': time,
      'X-Amz-Expires': String(expiresInSeconds),
      'X-Amz-SignedHeaders': names,
    })
      .map(([name, value]) => `${name}=${encoded(value)}`)
      .join('&');
    const lines = signed.map(([name, value]) => `${name}:${value}\n`).join('');
    const request = [method, path, query, lines, names, 'UNSIGNED-PAYLOAD'].join('\n');
    const text = [ALGORITHM, time, scope, hash('sha256', request)].join('\n');
    const signature = createHmac('sha256', keyOf(day)).update(text).digest('hex');
    return `${origin}${path}?${query}&X-Amz-Signature=${signature}`;
  };
}

/** The signing key of a day, such as 20261122; that of the last one is kept. */
function signingKeys(secretKey: string, region: string): (day: string) => KeyObject {
  let last: { day: string; key: KeyObject } | undefined;
  return (day) => {
    if (last?.day !== day) last = { day, key: signingKey(secretKey, [day, region, 's3', 'aws4_request']) };
    return last.key;
  };
}

const signingKey = (secretKey: string, scope: string[]): KeyObject =>
  createSecretKey(
    scope.reduce((key, part) => createHmac('sha256', key).update(part).digest(), Buffer.from(`AWS4${secretKey}`)),
  );

/** RFC 3986: no reserved character is left. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

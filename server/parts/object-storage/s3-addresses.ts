/*
 * minio cannot bind type and length to a presigned address. This is the signer of the AWS SDK.
 */

import { Sha256 } from '@smithy/core/checksum';
import { buildQueryString } from '@smithy/core/protocols';
import { SignatureV4 } from '@smithy/signature-v4';

interface Keys {
  region: string;
  accessKey: string;
  secretKey: string;
  /** The session token of temporary keys. */
  sessionToken?: string | undefined;
}

interface PresignedRequest {
  method: string;
  /** Already encoded for a URL. */
  path: string;
  /** The headers that the signature binds, their names in lower case. */
  headers: Record<string, string>;
  /** Further parameters, signed as well. */
  query?: Record<string, string>;
  expiresInSeconds: number;
}

/**
 * AWS Signature Version 4 in the query (docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html), path
 * style. Valid only under the host name in `endpoint`, because Host is signed.
 */
export function presigner({ region, accessKey, secretKey, sessionToken }: Keys, endpoint: string) {
  const { host, hostname, protocol, origin } = new URL(endpoint);
  const signer = new SignatureV4({
    service: 's3',
    region,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey, ...(sessionToken && { sessionToken }) },
    sha256: Sha256,
    // S3 signs the sent path.
    uriEscapePath: false,
  });

  return async ({ method, path, headers, query = {}, expiresInSeconds }: PresignedRequest): Promise<string> => {
    const request = { method, protocol, hostname, path, query, headers: { host, ...headers, ...UNSIGNED_BODY } };
    const signed = await signer.presign(request, { expiresIn: expiresInSeconds });
    return `${origin}${path}?${buildQueryString(signed.query ?? {})}`;
  };
}

/** The signer moves it to the query. */
const UNSIGNED_BODY = { 'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD' };

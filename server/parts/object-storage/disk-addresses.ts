import { timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { Secrets } from '../../secrets.ts';
import type { IncomingFile, PutAddress } from './contract.ts';

type Signed = Pick<PutAddress, 'key' | 'contentType' | 'size'> & { expires: number };

/** Presigned addresses of the service itself, for one PUT each, signed with an HMAC over the same fields as S3's. */
export function diskAddresses({ appUrl, secrets }: { appUrl: string; secrets: Secrets }) {
  const signaturesOf = ({ key, contentType, size, expires }: Signed) =>
    secrets.derive(`put-object\n${[key, contentType, size, expires].join('\n')}`);

  return {
    presign({ key, contentType, size, expiresInSeconds }: PutAddress): string {
      const expires = Math.floor(Date.now() / 1000) + expiresInSeconds;
      const [signature] = signaturesOf({ key, contentType, size, expires });
      const query = new URLSearchParams({ contentType, size: String(size), expires: String(expires), signature });
      return `${appUrl}/${key}?${query}`;
    },

    /** Returns the size that the request must have. Throws FORBIDDEN if the request does not match its address. */
    verify({ key, query, contentType, contentLength }: IncomingFile): number {
      const size = Number(query.get('size'));
      const expires = Number(query.get('expires'));
      const signed = { key, contentType: query.get('contentType') ?? '', size, expires };
      const signature = query.get('signature') ?? '';
      if (!signaturesOf(signed).some((valid) => isEqual(signature, valid))) throw forbidden('The address is not valid');
      if (Date.now() >= expires * 1000) throw forbidden('The address has expired');
      if (contentType.toLowerCase() !== signed.contentType.toLowerCase())
        throw forbidden(`The content type must be ${signed.contentType}`);
      if (contentLength !== size) throw forbidden(`The content length must be ${size}`);
      return size;
    },
  };
}

export const forbidden = (message: string, cause?: unknown) => new ServiceError('FORBIDDEN', { message, cause });

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

import { timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { Secrets } from '../../secrets.ts';
import type { GetAddress, IncomingFile, PartAddress, PutAddress } from './contract.ts';

type SignedPut = Pick<PutAddress, 'key' | 'contentType' | 'size'> & { expires: number };
type SignedGet = Pick<GetAddress, 'key' | 'download'> & { expires: number };

type SignedPart = Pick<PartAddress, 'key' | 'part' | 'start' | 'size'> & { expires: number };

/** Presigned addresses of the service itself, signed with an HMAC over the same fields as S3's. */
export function diskAddresses({ appUrl, secrets }: { appUrl: string; secrets: Secrets }) {
  const signaturesOfPut = ({ key, contentType, size, expires }: SignedPut) =>
    secrets.derive(`put-object\n${[key, contentType, size, expires].join('\n')}`);
  const signaturesOfGet = ({ key, download = '', expires }: SignedGet) =>
    secrets.derive(`get-object\n${[key, expires, download].join('\n')}`);
  const signaturesOfPart = ({ key, part, start, size, expires }: SignedPart) =>
    secrets.derive(`put-part\n${[key, part, start, size, expires].join('\n')}`);

  const requireValid = (query: URLSearchParams, valid: readonly string[], expires: number): void => {
    const signature = query.get('signature') ?? '';
    if (!valid.some((one) => isEqual(signature, one))) throw forbidden('The address is not valid');
    if (Date.now() >= expires * 1000) throw forbidden('The address has expired');
  };

  return {
    presignPut({ key, contentType, size, expiresInSeconds }: PutAddress): string {
      const expires = expiryIn(expiresInSeconds);
      const [signature] = signaturesOfPut({ key, contentType, size, expires });
      const query = new URLSearchParams({ contentType, size: String(size), expires: String(expires), signature });
      return `${appUrl}/${key}?${query}`;
    },

    presignPart({ key, part, start, size, expiresInSeconds }: PartAddress): string {
      const expires = expiryIn(expiresInSeconds);
      const [signature] = signaturesOfPart({ key, part, start, size, expires });
      return `${appUrl}/${key}?part=${part}&start=${start}&size=${size}&expires=${expires}&signature=${signature}`;
    },

    presignGet({ key, download, expiresInSeconds }: GetAddress): string {
      const expires = expiryIn(expiresInSeconds);
      const [signature] = signaturesOfGet({ key, download, expires });
      const query = new URLSearchParams({
        ...(download !== undefined && { download }),
        expires: String(expires),
        signature,
      });
      return `${appUrl}/${key}?${query}`;
    },

    /** The name to save the file under. Throws FORBIDDEN if the address is not one of `presignGet` for this key. */
    verifyGet(key: string, query: URLSearchParams): string | undefined {
      const expires = Number(query.get('expires'));
      const download = query.get('download') ?? undefined;
      requireValid(query, signaturesOfGet({ key, download, expires }), expires);
      return download;
    },

    /** Returns the size that the request must have. Throws FORBIDDEN if the request does not match its address. */
    verifyPut({ key, query, contentType, contentLength }: IncomingFile): number {
      const size = Number(query.get('size'));
      const expires = Number(query.get('expires'));
      const signed = { key, contentType: query.get('contentType') ?? '', size, expires };
      requireValid(query, signaturesOfPut(signed), expires);
      if (contentType.toLowerCase() !== signed.contentType.toLowerCase())
        throw forbidden(`The content type must be ${signed.contentType}`);
      requireLength(contentLength, size);
      return size;
    },

    /** Throws FORBIDDEN if the request does not match its address. */
    verifyPart({ key, query, contentLength }: IncomingFile): SignedPart {
      const [part = 0, start = 0, size = 0, expires = 0] = ['part', 'start', 'size', 'expires'].map((name) =>
        Number(query.get(name)),
      );
      const signed = { key, part, start, size, expires };
      requireValid(query, signaturesOfPart(signed), expires);
      requireLength(contentLength, size);
      return signed;
    },
  };
}

function requireLength(contentLength: number | undefined, size: number): void {
  if (contentLength !== size) throw forbidden(`The content length must be ${size}`);
}

const expiryIn = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

export const forbidden = (message: string, cause?: unknown) => new ServiceError('FORBIDDEN', { message, cause });

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

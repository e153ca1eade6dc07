export { type Cropper, createCropper } from './cropper.ts';
export { cropPicture, openPicture, type Picture, scalePicture } from './picture.ts';
export { MAX_ZOOM, type Square } from './square.ts';

"""Running a plan: a coordinator without torch or CUDA context, and one worker process per device."""

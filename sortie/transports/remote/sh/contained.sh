is_inside && whole yes inside
whole yes outside
